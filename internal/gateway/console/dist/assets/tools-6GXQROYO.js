/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-YOBVXQXN.js";import"./chunk-MZCC5XV4.js";import"./chunk-5HAC3AHZ.js";import"./chunk-R663BL4I.js";import"./chunk-G2TCPSGF.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
