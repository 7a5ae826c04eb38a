/* Licences of the libraries in this file: NOTICE.txt */
import{h as a,i as b,j as c}from"./chunk-2ROOOVMC.js";import"./chunk-PDF7NQIQ.js";import"./chunk-WAKQEYGT.js";import"./chunk-XTQSOOOX.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
