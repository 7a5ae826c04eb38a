/* Licences of the libraries in this file: NOTICE.txt */
import{i as a,j as b,k as c}from"./chunk-5H6YQUET.js";import"./chunk-ABUTQEI5.js";import"./chunk-A256LNS2.js";import"./chunk-UICSGFSY.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
