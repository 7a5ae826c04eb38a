/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-TVHTQOS5.js";import"./chunk-5LIFUJBF.js";import"./chunk-MHCU5NPX.js";import"./chunk-EOU52FIG.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
